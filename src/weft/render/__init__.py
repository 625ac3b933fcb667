"""Pictures and animations without a display."""
