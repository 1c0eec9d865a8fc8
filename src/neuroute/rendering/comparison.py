from neuroute.rendering.grid import Method as Method
