"""Values of Gymnasium spaces in arrays, one for each field of a region."""
