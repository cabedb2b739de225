"""Linear objective perturbation: options, calibration, draws."""
