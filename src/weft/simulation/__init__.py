"""The simulation, its certificate and its recording."""
