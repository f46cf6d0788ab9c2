

def test_solvers_without_brackets():
    with pytest.raises(InputError, match="not a tuple of solvers"):
        bf.solvers.Race(bf.solvers.PCG(), bf.solvers.RidgeHomotopy())
