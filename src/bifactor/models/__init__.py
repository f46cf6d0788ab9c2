"""What has been fitted: predict, recommend, fold in, save and load."""
