"""CVAT for images 1.1: a file per video, with tags on its flagged frames only.

A tag is the label that the flag's fix would give the frame.
CVAT took over 20 hours to read a task of 200,000 tags, so that other frames have no tag.
"""

from xml.etree import ElementTree as ET

from csl_dist.audit.reader import Audit
from csl_dist.export.format import Format
from csl_dist.export.spans import FlaggedVideo, confidence, flagged_videos, written
from csl_dist.storage.output import OutputFolder
from csl_dist.storage.url import key_part

ATTRIBUTES = ("annotated", "kind", "score")


def write_cvat(audit: Audit, folder: OutputFolder, name: str) -> str:
    found = list(flagged_videos(audit))
    for one in found:
        tree = ET.ElementTree(_annotations(one, audit.classes))
        ET.indent(tree)
        path = folder.file(f"{key_part(one.video.id)}.xml")
        tree.write(path, encoding="utf-8", xml_declaration=True)
    return written(sum(len(one.flags) for one in found), len(found), folder.path)


def _annotations(found: FlaggedVideo, classes: tuple[str, ...]) -> ET.Element:
    root = ET.Element("annotations")
    ET.SubElement(root, "version").text = "1.1"
    task = ET.SubElement(ET.SubElement(root, "meta"), "task")
    ET.SubElement(task, "name").text = found.video.id
    ET.SubElement(task, "size").text = str(found.num_frames)
    ET.SubElement(task, "mode").text = "interpolation"
    labels = ET.SubElement(task, "labels")
    for name in classes:
        label = ET.SubElement(labels, "label")
        ET.SubElement(label, "name").text = name
        attributes = ET.SubElement(label, "attributes")
        for attribute in ATTRIBUTES:
            element = ET.SubElement(attributes, "attribute")
            ET.SubElement(element, "name").text = attribute
            ET.SubElement(element, "mutable").text = "False"
            ET.SubElement(element, "input_type").text = "text"
            ET.SubElement(element, "default_value").text = ""
            ET.SubElement(element, "values").text = ""
    for flag in sorted(found.flags, key=lambda flag: flag["start"]):
        values = (flag["label"], flag["kind"], f"{confidence(flag, flag['score']):.3f}")
        for one in found.labelled_spans(flag):
            for frame in range(one.span.start, one.span.stop):
                # The names that CVAT gives to the frames of a video, from 0.
                image = ET.SubElement(root, "image", id=str(frame), name=f"frame_{frame:06d}")
                tag = ET.SubElement(image, "tag", label=one.label, source="auto")
                for attribute, value in zip(ATTRIBUTES, values, strict=True):
                    ET.SubElement(tag, "attribute", name=attribute).text = value
    return root


CVAT = Format(name="cvat", suffix="", inside=".xml", write=write_cvat)
