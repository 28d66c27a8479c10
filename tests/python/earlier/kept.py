"""The files of earlier versions: a folder beside this file for each version."""

import os
import tarfile
from pathlib import Path

VERSIONS = sorted(path.name for path in Path(__file__).parent.glob("[0-9]*"))


def unpacked(version, name, folder):
    """Unpack a folder of files that a version wrote. Like the files it made, they take no room for zeros."""
    folder.mkdir(exist_ok=True)
    with tarfile.open(Path(__file__).parent / version / f"{name}.tar.xz") as archive:
        for entry in archive:
            place = folder / entry.name
            if entry.isdir():
                place.mkdir(exist_ok=True)
            else:
                with place.open("wb") as file, archive.extractfile(entry) as content:
                    for page in iter(lambda: content.read(4096), b""):
                        if page.strip(b"\0"):
                            file.write(page)
                        else:
                            file.seek(len(page), os.SEEK_CUR)
                    file.truncate()
            place.chmod(entry.mode)
    return folder
