"""Audits of losses that are linear in θ, or hold a linear term, and of outputs one by one."""
