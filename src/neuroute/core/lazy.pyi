import matplotlib
import matplotlib.axes
import matplotlib.axis
import matplotlib.cm
import matplotlib.collections
import matplotlib.colors
import matplotlib.figure
import matplotlib.font_manager
import matplotlib.lines
import matplotlib.markers
import matplotlib.patches
import matplotlib.ticker
import pandas
import torch as torch

mpl = matplotlib
pd = pandas

__all__ = ["mpl", "pd", "torch"]
