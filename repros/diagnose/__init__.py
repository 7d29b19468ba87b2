"""Diagnosis of a training: from a log (`repros match`), while it runs (`watch`), from two runs (`compare`)."""
