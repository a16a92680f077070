"""Values that describe an archived ensemble: files, trees, paths, findings. No I/O except through `sink`."""
