"""Scene files: what is simulated, in TOML, SI units and z up."""
