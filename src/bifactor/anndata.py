"""Components of counts in AnnData objects, following the conventions of scanpy."""

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse

from bifactor._compat import imported
from bifactor.arrays import Array
from bifactor.errors import InputError
from bifactor.estimators.pca import PoissonPCA

if TYPE_CHECKING:
    from anndata import AnnData

__all__ = ["pca"]


def pca(
    adata: "AnnData",
    n_comps: int | str = 50,
    *,
    layer: str | None = None,
    use_highly_variable: bool | None = None,
    exposure: str | Array | None = "total",
    dispersion: float | str = "auto",
    ridge: float | str = "auto",
    key_added: str = "X_bifactor",
    random_state: Any = 0,
    copy: bool = False,
    **settings: Any,
) -> "AnnData | None":
    """Compute components of raw counts by `PoissonPCA`, for `scanpy.pp.neighbors(adata, use_rep="X_bifactor")`.

    Pass raw counts, neither normalised nor log-transformed; they are not changed.

    Parameters
    ----------
    adata : AnnData
        Cells in rows, genes in columns.
    n_comps : int or "auto"
        Number of components, at most the number of cells or of genes in use.
    layer : str, optional
        The layer that holds the counts; by default, `adata.X`.
    use_highly_variable : bool, optional
        Whether to use only genes with `adata.var["highly_variable"]`; by default, if there is such a column.
    exposure : {"total", None}, a column of obs, or an array
        The sequencing depth of each cell: in proportion to its total over the genes in use, equal, or given.
    dispersion, ridge
        See `PoissonPCA`.
    key_added : str
        The key under which results are stored.
    random_state : int, RandomState or None
        The source of randomness.
    copy : bool
        Whether to return a copy with the results and leave `adata` unchanged.
    **settings
        More parameters of `PoissonPCA`, such as `n_jobs`.

    Returns
    -------
    None, or AnnData with `copy=True`, with

    `.obsm[key_added]` : the scores of cells,
    `.varm[key_added]` : the loadings of genes, zero for genes that were not used,
    `.uns[key_added]` : `params`, the `intercept` of each gene in use, the shares of deviance that components explain
    (`deviance_ratio`, `deviance_explained`), the `dispersion` and the ridge (`ridge`).
    """
    if not hasattr(adata, "obsm") or not hasattr(adata, "varm"):
        _require_anndata()
        raise InputError(f"adata is a {type(adata).__name__}, not an AnnData. Use bifactor.PoissonPCA for matrices.")
    adata = adata.copy() if copy else adata
    counts, used = _counts(adata, layer, use_highly_variable)
    depth, given = _exposure(adata, exposure)
    most = n_comps if isinstance(n_comps, str) else min(n_comps, *counts.shape)
    model = PoissonPCA(most, exposure=depth, dispersion=dispersion, ridge=ridge, random_state=random_state, **settings)
    scores = model.fit(counts, exposure=given).transform(counts, exposure=given)
    loadings = np.zeros((adata.n_vars, model.n_components_), scores.dtype)
    loadings[used] = model.components_.T
    adata.obsm[key_added], adata.varm[key_added] = scores, loadings
    adata.uns[key_added] = {
        "params": {
            "n_comps": model.n_components_,
            "layer": "X" if layer is None else layer,
            "use_highly_variable": not used.all(),
            "exposure": exposure if isinstance(exposure, str) else ("none" if exposure is None else "given"),
        },
        "intercept": model.intercept_,
        "deviance_ratio": model.explained_deviance_ratio_,
        "deviance_explained": model.deviance_explained_,
        "dispersion": model.dispersion_,
        "ridge": model.ridge_,
    }
    return adata if copy else None


def _counts(adata: "AnnData", layer: str | None, use_highly_variable: bool | None) -> tuple[Any, Array]:
    """The counts of the genes in use, in single precision, and which genes these are."""
    if layer is not None and layer not in adata.layers:
        names = ", ".join(adata.layers) or "none"
        raise InputError(f"layer={layer!r} is not a layer of adata, which has {names}. Pass one of these.")
    X = adata.X if layer is None else adata.layers[layer]
    if X is None:
        raise InputError("adata.X is empty. Pass the layer that holds the counts.")
    used = _used(adata, use_highly_variable)
    X = X[:, used] if not used.all() else X
    X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
    stored: Any = X.data if sparse.issparse(X) else X
    if stored.size and (np.nanmin(stored) < 0 or not np.all(stored == np.floor(stored))):
        where = "adata.X" if layer is None else f"layer {layer!r}"
        raise InputError(
            f"{where} holds numbers that are not counts. Pass the layer with raw counts, before logarithms."
        )
    return X.astype(np.float32), used


def _used(adata: "AnnData", use_highly_variable: bool | None) -> Array:
    known = "highly_variable" in adata.var
    if use_highly_variable and not known:
        raise InputError("adata.var has no column 'highly_variable'. Run scanpy.pp.highly_variable_genes first.")
    if not known or use_highly_variable is False:
        return np.ones(adata.n_vars, bool)
    used = np.asarray(adata.var["highly_variable"], bool)
    if not used.any():
        raise InputError("No gene is highly variable. Pass use_highly_variable=False to use all of them.")
    return used


def _exposure(adata: "AnnData", exposure: Any) -> tuple[str | None, Array | None]:
    """The parameter of `PoissonPCA`, and the numbers if they are given."""
    if exposure is None or (isinstance(exposure, str) and exposure == "total"):
        return exposure, None
    if not isinstance(exposure, str):
        return None, np.asarray(exposure, np.float64)
    if exposure not in adata.obs:
        raise InputError(
            f"exposure={exposure!r} is neither 'total' nor a column of adata.obs. Pass one of these, or numbers."
        )
    return None, np.asarray(adata.obs[exposure], np.float64)


def _require_anndata() -> None:
    try:
        imported("anndata")
    except ImportError:
        raise InputError("anndata is not installed. Use: pip install 'bifactor[anndata]'.") from None
