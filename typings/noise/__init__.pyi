# What actors.noise uses of noiseprotocol 0.3.1, and nothing else.
# tests/actors/noise/test_dependency.py checks that each name here exists in the installed package.
