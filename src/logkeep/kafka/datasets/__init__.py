"""Datasets: records of topics in formats that other tools read, written from a cluster or from a backup."""
