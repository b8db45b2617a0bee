"""What tests of the package share; not part of what ships."""
