"""The labels that tiny runs train from and are validated on."""

from stores import cvrp_store, store, stores

__all__ = ["cvrp_store", "store", "stores"]
