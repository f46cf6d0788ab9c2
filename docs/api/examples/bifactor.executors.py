"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

rng = np.random.default_rng(0)
truth = rng.standard_normal((300, 2)) @ rng.standard_normal((2, 40))
rows, cols = np.nonzero(rng.random(truth.shape) < 0.3)
store = bf.data.partition((rows, cols, truth[rows, cols]), "blocks", force=True)

# --- Streamed ---
f = bf.operators.Partitioned("squared", store, bf.executors.Streamed(memory="1GB"))
result = bf.solve(bf.Objective(f, bf.penalties.Ridge(0.1)), rank=2, rng=0)

# --- Executor ---
print(issubclass(bf.executors.Streamed, bf.executors.Executor))  # True

# --- RemoteExecutor ---
# a subclass for another engine than Dask has about 50 lines, see "Add an executor"
print(issubclass(bf.executors.Dask, bf.executors.RemoteExecutor))  # True

# --- AxpyArray ---
base, direction = np.ones((40, 2)), np.ones((40, 2))
shared = bf.executors.AxpyArray(base + 0.5 * direction, base, direction, 0.5)
print(shared.value[0, 0])  # 1.5

# --- BlockData ---
block = store.parts[0].load()
print(isinstance(block, bf.executors.BlockData), block.y.size)

# --- Block ---
part: bf.executors.Block = store.parts[0]  # anything with these attributes will do
print(part.start, part.stop, part.size)


# --- BlockResult ---
def total(opened, tall, shared):
    """A task: what it finds in one block."""
    return bf.executors.BlockResult(sums=(float(opened.sum()),))


def values(part, loaded):
    return loaded.y


gathered = bf.executors.Streamed().run_pass(store.parts, values, total)
print(np.isclose(gathered.sums[0], truth[rows, cols].sum()))  # True


# --- PassResult ---
def count(opened, tall, shared):
    return bf.executors.BlockResult(sums=(opened.size,), each=opened.size)


gathered = bf.executors.Streamed().run_pass(store.parts, lambda part, loaded: loaded.y, count)
print(isinstance(gathered, bf.executors.PassResult), gathered.sums, gathered.each)

# --- Workspace ---
workspace = bf.executors.Workspace()  # arrays that the next block uses again
for part in store.parts:
    part.load(workspace)

# --- Dask ---
from distributed import Client  # noqa: E402

with Client(
    processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
) as client:
    f = bf.operators.Partitioned("squared", store, bf.executors.Dask(client))
    result = bf.solve(bf.Objective(f, bf.penalties.Ridge(0.1)), rank=2, rng=0, max_iter=5)
