"""Sparse matrices of 3 x 3 blocks and the conjugate gradients that solve with them."""
