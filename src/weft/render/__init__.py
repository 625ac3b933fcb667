"""Pictures and animations without a display: plain arrays in, bytes or files out.

A still picture of cloth on a box, seen from a pleasant place:

    from weft.render.animation import write_animation, write_picture
    from weft.render.camera import Framing
    from weft.render.colours import body_colour, cloth_colours
    from weft.render.picture import BODY_CREASE, HeatScale, Surface, draw

    size = (960, 720)
    framing = Framing(size)                      # azimuth, elevation, field_of_view, margin
    framing.include(cloth_positions)             # of every frame, and of the bodies
    camera = framing.camera()                    # taken once: it does not move during an animation
    front, back = cloth_colours(0)               # cloth number 0, 1, 2, ...
    surfaces = [
        Surface(cloth_positions, cloth_triangles, front, back),
        Surface(box_positions, box_triangles, body_colour(0), crease=BODY_CREASE),
    ]
    write_picture("cloth.png", draw(surfaces, camera, size, ground_height=0.0))

An animation takes frames from an iterator, one at a time:

    write_animation("cloth.webp", (draw(...) for positions in frames), fps=30, progress=print)

A level plane is the floor (`ground_height`); any other plane is a large quad with `scenery=True`. Numbers per vertex
or triangle (`Surface.values`, with one `HeatScale` for all frames) are shown as a heat map with a legend.

Inside: `camera` places the eye, `rasteriser` finds what is seen, `normals` smooths, `lights` keeps shadows and sky,
`shading` turns it into colour, `picture` puts it together; `webp`, `gif` and `frames` pack animations. Importing
`picture` imports numba; `camera`, `colours` and `animation` do not.
"""
