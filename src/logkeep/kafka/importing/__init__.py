"""Imports datasets and archives of other tools into a repository."""
