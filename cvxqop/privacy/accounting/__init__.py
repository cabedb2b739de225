"""Profiles, quadrature and composition."""
