"""How much memory a computation adds at its peak, alike on a GPU and on a CPU.

On CUDA torch's allocator says it.  On a CPU nobody does: the resident size of the process holds torch itself and what
was freed and not yet given back, which hides a computation of a few MiB.  So the tensors that operations return are
followed from when they appear until nothing refers to them.  What a kernel takes for itself and frees before it
returns is in CUDA's figure and not in the CPU's.  That torch's own profiler sees too: of our decisions it reports the
same bytes, and an eighth more where attention holds its scores, whose softmax makes a mask on its way.
"""

import weakref
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

Result = TypeVar("Result")


class LiveBytes(TorchDispatchMode):
    """Bytes of all tensors that operations inside the block made and that are still referred to, now and at the peak.

    Tensors that share memory count once, those that were there before never.  Without gradients (no_grad): inside
    inference_mode some operations pass as a whole, and what they make on their way is not seen.
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = 0
        self.peak = 0
        self._seen: dict[int, Any] = {}  # address of a storage -> what keeps it, or a reference that ends with it

    def __torch_dispatch__(
        self, func: Callable[..., Any], types: Sequence[type], args: Sequence[Any] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        for storage in _storages((args, kwargs)):  # what an operation reads and nobody here has made was there before
            self._seen.setdefault(storage._cdata, storage)
        result = func(*args, **kwargs)
        for storage in _storages(result):
            self._add(storage)
        return result

    def _add(self, storage: torch.UntypedStorage) -> None:
        address, size = storage._cdata, storage.nbytes()
        if address in self._seen:
            return
        self.now += size
        self.peak = max(self.peak, self.now)

        def forget(_: Any) -> None:
            self.now -= size
            del self._seen[address]

        self._seen[address] = weakref.ref(storage, forget)


def _storages(values: Any) -> list[torch.UntypedStorage]:
    return [leaf.untyped_storage() for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]


def measure_memory(call: Callable[[], Result], place: torch.device) -> tuple[Result, int, int]:
    """What `call` returns, the bytes that it adds at its peak, and those that its result still holds.

    Once before, something like it should have run: a GPU's libraries take their work space at their first call.
    """
    with torch.no_grad():
        if place.type == "cuda":
            torch.cuda.synchronize(place)
            before = torch.cuda.memory_allocated(place)
            torch.cuda.reset_peak_memory_stats(place)
            result = call()
            torch.cuda.synchronize(place)
            peak = torch.cuda.max_memory_allocated(place) - before
            return result, peak, torch.cuda.memory_allocated(place) - before
        with LiveBytes() as live:
            result = call()
        return result, live.peak, live.now


def out_of_memory(error: RuntimeError) -> bool:
    """Whether torch says that there is not enough memory, on either device."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)
