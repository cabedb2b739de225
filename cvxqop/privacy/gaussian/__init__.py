"""The Gaussian ensemble: options, calibration, draws."""
