"""How fast a solver, a pass or a program is: seconds and iterations, against other methods and libraries."""
