"""The role of the regulariser g (§6.2 of the paper)."""
