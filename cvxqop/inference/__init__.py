"""What a release says about itself: error bars, tests, paths, fit. Nothing reads records."""
