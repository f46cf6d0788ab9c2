"""Examples of the API reference; see docs/_ext/api_examples.py."""

import numpy as np

import bifactor as bf

z = np.array([-1.0, 0.5, 2.0])  # predictions
signs, counts = np.array([-1.0, 1.0, 1.0]), np.array([0.0, 2.0, 7.0])

# --- Squared ---
loss = bf.losses.Squared()
loss.value(z, np.zeros(3))  # ½z²

# --- Huber ---
loss = bf.losses.Huber(delta=0.5)
loss.gradient(z, np.zeros(3))  # at most 0.5: an outlier pulls no harder

# --- Logistic ---
loss = bf.losses.Logistic()
loss.value(z, signs)
loss.mean(z)  # P(y = +1)

# --- Probit ---
loss = bf.losses.Probit(sigma=0.5)
loss.mean(z)  # Φ(z/σ)

# --- Ordinal ---
loss = bf.losses.Ordinal(levels=5)  # grades 1 to 5
loss.value(z, np.array([1.0, 3.0, 5.0]))
loss.mean(z)  # the expected grade

# --- Poisson ---
loss = bf.losses.Poisson()
loss.mean(z)  # e^z
loss.value(z, counts)

# --- NegativeBinomial ---
loss = bf.losses.NegativeBinomial(theta=5.0)  # the variance is μ + μ²/5
loss.value(z, counts)

# --- ExpectedCounts ---
loss = bf.losses.ExpectedCounts()
loss.value(np.array([1.0, 2.0, 6.5]), counts)  # z is the mean itself

# --- Shifted ---
loss = bf.losses.Shifted(bf.losses.Logistic(), 1.5)
assert np.allclose(loss.mean(z), bf.losses.Logistic().mean(z + 1.5))

# --- Loss ---
issubclass(bf.losses.Huber, bf.losses.Loss)  # True; `Add a loss` shows a loss of your own
bf.testing.check_loss(bf.losses.Huber(0.5), y=[-2.0, 0.0, 3.0])

# --- DataFit ---
fit = bf.losses.DataFit(bf.losses.Squared(), np.zeros(3), np.array([1.0, 2.0, 1.0]))
fit.value(z)  # Σ wᵢ ℓ(zᵢ; yᵢ)

# --- Targets ---
shares = bf.losses.Targets(
    "numbers from 0 to 1", lambda y: (y >= 0) & (y <= 1), "Divide by the total."
)
