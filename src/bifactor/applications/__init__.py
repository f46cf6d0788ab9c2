"""One package for each kind of question: a workflow that answers it from start to end, and its report."""
