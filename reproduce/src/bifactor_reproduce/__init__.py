"""The experiments of the paper behind bifactor, computed anew: the command `bifactor reproduce`."""
