"""Grids and meshes, topology, boxes, distances and exact predicates: what needs no physics."""
