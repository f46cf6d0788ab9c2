"""Imputation model for tables of numbers, grades, booleans and categories, independent of scikit-learn."""
