"""Components of AnnData objects: those of PoissonPCA, kept where scanpy looks for them."""

import sys

import numpy as np
import pytest
from scipy import sparse

import bifactor as bf
from bifactor.errors import InputError


def counts(shape=(60, 40), seed=0):
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((shape[0], 2)) @ rng.standard_normal((2, shape[1]))
    return rng.poisson(np.exp(0.7 * z)).astype(np.float64)


def made(X=None, **parts):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed: pip install 'bifactor[anndata]'")
    return anndata.AnnData(counts() if X is None else X, **parts)


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_it_is_poisson_pca_of_the_counts(form):
    adata = made(form(counts()))
    before = adata.X.copy()
    assert bf.anndata.pca(adata, 2) is None
    model = bf.PoissonPCA(2, exposure="total", dispersion="auto", random_state=0)
    X = sparse.csr_array(counts().astype(np.float32))
    np.testing.assert_allclose(adata.obsm["X_bifactor"], model.fit(X).transform(X), atol=1e-4)
    np.testing.assert_allclose(adata.varm["X_bifactor"], model.components_.T, atol=1e-4)
    told = adata.uns["X_bifactor"]
    assert told["dispersion"] == pytest.approx(model.dispersion_, rel=1e-3)
    np.testing.assert_allclose(told["deviance_ratio"], model.explained_deviance_ratio_, atol=1e-4)
    assert type(adata.X) is type(before)
    assert adata.X.dtype == before.dtype
    assert abs(adata.X - before).sum() == 0


def test_layers_highly_variable_genes_and_copies():
    adata = made(np.log1p(counts()), layers={"counts": counts()})
    adata.var["highly_variable"] = np.arange(40) % 4 != 0
    other = bf.anndata.pca(adata, 3, layer="counts", key_added="glm", dispersion=0.0, copy=True)
    assert "glm" not in adata.obsm
    assert other.obsm["glm"].shape == (60, 3)
    assert np.all(other.varm["glm"][::4] == 0)
    assert np.all(np.any(other.varm["glm"] != 0, axis=1) == adata.var["highly_variable"])
    everything = bf.anndata.pca(adata, 3, layer="counts", use_highly_variable=False, dispersion=0.0, copy=True)
    assert np.all(np.any(everything.varm["X_bifactor"] != 0, axis=1))
    few = bf.anndata.pca(made(counts((6, 5))), dispersion=0.0, copy=True)
    assert few.obsm["X_bifactor"].shape == (6, 5)


def test_exposures_by_name_or_as_numbers():
    adata = made()
    adata.obs["depth"] = np.linspace(0.5, 2, 60)
    by_name = bf.anndata.pca(adata, 2, exposure="depth", dispersion=0.0, copy=True).obsm["X_bifactor"]
    given = bf.anndata.pca(adata, 2, exposure=np.linspace(0.5, 2, 60), dispersion=0.0, copy=True).obsm["X_bifactor"]
    np.testing.assert_array_equal(by_name, given)
    alike = bf.anndata.pca(adata, 2, exposure=None, dispersion=0.0, copy=True).obsm["X_bifactor"]
    assert not np.allclose(by_name, alike)


def test_it_is_written_and_read_with_the_data(tmp_path):
    anndata = pytest.importorskip("anndata", reason="anndata is not installed: pip install 'bifactor[anndata]'")
    adata = made()
    bf.anndata.pca(adata, 2, dispersion=0.0)
    adata.write_h5ad(tmp_path / "cells.h5ad")
    again = anndata.read_h5ad(tmp_path / "cells.h5ad")
    np.testing.assert_array_equal(again.obsm["X_bifactor"], adata.obsm["X_bifactor"])
    assert again.uns["X_bifactor"]["ridge"] == adata.uns["X_bifactor"]["ridge"]


def test_neighbours_can_be_found_from_it():
    scanpy = pytest.importorskip("scanpy", reason="scanpy is not installed")
    adata = made()
    bf.anndata.pca(adata, 2, dispersion=0.0)
    scanpy.pp.neighbors(adata, n_neighbors=5, use_rep="X_bifactor")
    assert adata.obsp["connectivities"].shape == (60, 60)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"layer": "raw"}, "layer='raw' is not a layer of adata, which has none"),
        ({"use_highly_variable": True}, "no column 'highly_variable'"),
        ({"exposure": "size"}, "neither 'total' nor a column"),
        ({"exposure": np.ones(3)}, "exposure has shape"),
        ({"n_comps": 0}, "n_components=0"),
    ],
)
def test_mistakes_are_told_in_a_sentence(arguments, message):
    with pytest.raises(InputError, match=message):
        bf.anndata.pca(made(), **arguments)


def test_numbers_that_are_not_counts_are_refused():
    with pytest.raises(InputError, match=r"adata.X holds numbers that are not counts"):
        bf.anndata.pca(made(np.log1p(counts())))
    with pytest.raises(InputError, match="are not counts"):
        bf.anndata.pca(made(-counts()))


def test_without_anndata_there_is_advice(monkeypatch):
    monkeypatch.setitem(sys.modules, "anndata", None)
    with pytest.raises(InputError, match=r"anndata is not installed\. Use: pip install 'bifactor\[anndata\]'"):
        bf.anndata.pca(counts())


def test_a_matrix_is_refused():
    pytest.importorskip("anndata", reason="anndata is not installed: pip install 'bifactor[anndata]'")
    with pytest.raises(InputError, match="adata is a ndarray, not an AnnData"):
        bf.anndata.pca(counts())
