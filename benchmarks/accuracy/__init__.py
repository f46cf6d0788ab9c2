"""How good answers are: errors, rankings, intervals and certificates, against other methods and libraries."""
