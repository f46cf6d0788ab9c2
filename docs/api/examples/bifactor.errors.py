"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

# --- BifactorError ---
try:
    bf.load("nowhere")
except bf.errors.BifactorError as error:  # the root of them all
    print(error)

# --- InputError ---
try:
    bf.losses.Huber(delta=-1.0)
except bf.errors.InputError as error:  # a ValueError, too
    print(error)

# --- KindError ---
try:
    bf.TableImputer().fit([[1.0, {}], [2.0, {}]])
except bf.errors.KindError as error:  # a TypeError, too
    print(error)

# --- SmoothnessError ---
counts = bf.Problem("poisson", bf.operators.Full((3, 2)), np.ones((3, 2)))
try:
    bf.solve(counts, 1, bf.solvers.BFGD(), rng=0)
except bf.errors.SmoothnessError as error:  # Poisson's loss has no global L
    print(error)

# --- CheckError ---
# the gradient lacks a 2
wrong = bf.Function(lambda X: np.sum(X**2), lambda X: X, shape=(3, 2))
try:
    bf.testing.check_gradient(wrong)
except bf.errors.CheckError as error:  # an AssertionError, too
    print(error)

# --- FileError ---
try:
    bf.data.read("nowhere.csv")
except bf.errors.FileError as error:
    print(error)

# --- LostError ---
# True: workers of a cluster are gone, or do not answer
print(issubclass(bf.errors.LostError, ConnectionError))
