"""Factor analysis of tables with missing entries, by variational Bayes."""
