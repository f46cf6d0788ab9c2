"""The paper's experiments: one file for each, what they share in `harness`, and what is made of them in `report`."""
