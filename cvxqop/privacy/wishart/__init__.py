"""The Wishart ensemble: options, calibration, draws."""
