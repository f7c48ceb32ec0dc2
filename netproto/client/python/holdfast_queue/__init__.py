"""Holdfast's work queue, over redis-py."""
