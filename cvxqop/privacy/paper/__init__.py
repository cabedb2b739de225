"""The calibration of Cortild and Cartis 2026 as published."""
