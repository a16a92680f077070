"""The store in a local directory: objects are files, written durably, listed in the order of full names."""
