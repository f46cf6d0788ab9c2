"""Tables of numbers, grades, booleans and categories with holes: a model of all columns, free of scikit-learn."""
