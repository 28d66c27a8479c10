//! Limits read access to the stores. The service's user can read them, and if the configuration names a group, its
//! members can too. Root can always read.
//!
//! Folders and files are created without any permission for others, so there is no moment in which others can open
//! them. The permissions of an existing folder or file are repaired if it belongs to the service's user or to root. If
//! it belongs to any other user, it is refused, because that user could restore the permissions at any time. A user who
//! opened a file before the repair can still read it.

use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, lchown};
use std::path::Path;

use super::StoreError;

/// The permission bits of the group and of others.
const OTHERS_MODE: u32 = 0o077;

/// The set-group-id bit of a folder: new files in the folder get the folder's group.
const SET_GROUP: u32 = 0o2000;

/// The users who may read, in addition to the service's user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Readers {
    /// No other user.
    #[default]
    Owner,
    /// The members of the group with this id.
    Group(u32),
}

impl Readers {
    /// Converts the configured group, a name or a number, to readers.
    ///
    /// # Errors
    ///
    /// There is no such group.
    pub fn of(group: Option<&str>) -> Result<Self, String> {
        let Some(name) = group else { return Ok(Self::Owner) };
        if let Ok(number) = name.parse() {
            return Ok(Self::Group(number));
        }
        match nix::unistd::Group::from_name(name) {
            Ok(Some(group)) => Ok(Self::Group(group.gid.as_raw())),
            Ok(None) => Err(format!("store_group is {name:?}, which is not a group: `getent group` lists the groups")),
            Err(error) => Err(format!("cannot look up the group {name:?} of store_group: {error}")),
        }
    }

    /// The permission bits of a folder, excluding the owner's.
    fn of_folder(self) -> u32 {
        match self {
            Self::Owner => 0,
            Self::Group(_) => SET_GROUP | 0o050,
        }
    }

    /// The permission bits of a file, excluding the owner's.
    fn of_file(self) -> u32 {
        match self {
            Self::Owner => 0,
            Self::Group(_) => 0o040,
        }
    }
}

/// Creates a folder if it is missing, and repairs its permissions. Returns the previous mode if others could open the
/// folder.
///
/// # Errors
///
/// [`StoreError::Retry`]: the folder cannot be created. [`StoreError::Fatal`]: it belongs to another user, or its
/// permissions cannot be changed.
pub fn make_folder(path: &Path, readers: Readers) -> Result<Option<u32>, StoreError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| StoreError::Retry(format!("cannot create the folder {}: {error}", path.display())))?;
    // Follow a symbolic link: the owner of the folder matters, not the owner of the link.
    let target = fs::canonicalize(path).map_err(|error| cannot("look at", path, &error))?;
    let found = fs::symlink_metadata(&target).map_err(|error| cannot("look at", path, &error))?;
    repair(&target, &found, readers, readers.of_folder())
}

/// Creates a file if it is missing. An existing file stays unchanged.
///
/// # Errors
///
/// The errors are those of [`make_folder`].
pub fn make_file(path: &Path, readers: Readers) -> Result<(), StoreError> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => repair_file(path, readers).map(drop),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(cannot("create", path, &error)),
    }
}

/// Creates a file in a folder of the store, if it is missing. The readers of the folder can read the file.
///
/// # Errors
///
/// The errors are those of [`make_folder`].
pub fn make_file_as_folder(path: &Path) -> Result<(), StoreError> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let folder = fs::metadata(folder).map_err(|error| cannot("look at", folder, &error))?;
    let readers = if folder.mode() & 0o050 == 0o050 { Readers::Group(folder.gid()) } else { Readers::Owner };
    make_file(path, readers)
}

/// Repairs the mode of an existing file. Returns the previous mode if others could open the file.
///
/// # Errors
///
/// [`StoreError::Fatal`]: the file is a symbolic link, it belongs to another user, or its permissions cannot be
/// changed.
pub fn repair_file(path: &Path, readers: Readers) -> Result<Option<u32>, StoreError> {
    let found = match fs::symlink_metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.map_err(|error| cannot("look at", path, &error))?,
    };
    if found.is_symlink() {
        return Err(StoreError::Fatal(format!(
            "cannot use {}: it is a symbolic link; replace the link by the file",
            path.display()
        )));
    }
    repair(path, &found, readers, readers.of_file())
}

fn repair(path: &Path, found: &Metadata, readers: Readers, rights: u32) -> Result<Option<u32>, StoreError> {
    let shown = path.display();
    let user = nix::unistd::geteuid().as_raw();
    if found.uid() != user && found.uid() != 0 {
        return Err(StoreError::Fatal(format!(
            "cannot use {shown}: it belongs to the user with the number {}, who could read all records; give it to the \
             user of the service (chown -R {user} {shown}), or name another place",
            found.uid()
        )));
    }
    let refuse = |what: &str, error: io::Error| {
        StoreError::Fatal(format!(
            "cannot use {shown}: others can open it, and {what}: {error}; give it to the user of the service (chown -R \
             {user} {shown})"
        ))
    };
    if let Readers::Group(group) = readers
        && found.gid() != group
    {
        lchown(path, None, Some(group)).map_err(|error| {
            StoreError::Fatal(format!(
                "cannot give {shown} to the group {group} of store_group: {error}; the user of the service has to be \
                 a member of it"
            ))
        })?;
    }
    let mode = found.mode() & 0o7777;
    let wanted = mode & 0o700 | rights;
    if mode & (OTHERS_MODE | rights) != rights {
        let changed = fs::set_permissions(path, Permissions::from_mode(wanted));
        changed.map_err(|error| refuse(&format!("its mode cannot be changed to {wanted:04o}"), error))?;
    }
    Ok((mode & OTHERS_MODE & !rights != 0).then_some(mode))
}

fn cannot(what: &str, path: &Path, error: &io::Error) -> StoreError {
    StoreError::Retry(format!("cannot {what} {}: {error}", path.display()))
}
