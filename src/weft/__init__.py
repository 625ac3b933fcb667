"""Weft: cloth that never passes through itself."""
