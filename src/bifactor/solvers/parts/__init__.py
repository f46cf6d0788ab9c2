"""Parts that several solvers use."""
