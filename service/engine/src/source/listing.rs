//! Which files a read takes: directories and patterns resolved, hidden files left out, partition directories understood.

use std::sync::Arc;

use arrow::datatypes::Schema;
use datafusion::common::ScalarValue;
use datafusion::execution::context::SessionState;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use regex::Regex;

use super::location::Location;
use super::options::Options;
use super::partitioning::{self, PartitionColumns};
use crate::{Conf, Error, Result};

/// A file to read, and the values of the partition columns for its rows.
#[derive(Debug, Clone)]
pub(super) struct ListedFile {
    pub meta: ObjectMeta,
    pub partition_values: Vec<ScalarValue>,
}

/// The files of a read, in the order of their names. All lie in one store.
#[derive(Debug, Clone)]
pub(super) struct Files {
    pub location: Location,
    pub files: Vec<ListedFile>,
    pub partition_columns: PartitionColumns,
}

impl Files {
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.location.store
    }

    /// The non-empty files: the ones that can tell a schema.
    pub fn with_content(&self) -> impl Iterator<Item = &ListedFile> {
        self.files.iter().filter(|file| file.meta.size > 0)
    }
}

/// Lists the files under `paths`.
///
/// # Errors
/// [`Error::PathNotFound`] for a path or pattern without anything there.
pub(super) async fn list(
    state: &SessionState,
    conf: &Conf,
    paths: &[String],
    wanted: Option<&Schema>,
    options: &Options,
) -> Result<Files> {
    options.refuse("files", &["modifiedBefore", "modifiedAfter"])?;
    let is_recursive = options.flag("files", "recursiveFileLookup", false)?;
    let name_filter = options.get("pathGlobFilter").map(|glob| glob_regex(glob)).transpose()?;
    let base = options.get("basePath").map(|path| Location::parse(state, path)).transpose()?;
    let mut location: Option<Location> = None;
    let mut found: Vec<(ObjectMeta, Vec<String>)> = Vec::new();
    for text in paths {
        let at = Location::parse(state, text)?;
        if location.as_ref().is_some_and(|first| first.url != at.url) {
            return Err(Error::Unsupported { feature: "reading from more than one file system at once".into() });
        }
        let roots = roots(&at).await?;
        if roots.is_empty() {
            return Err(Error::PathNotFound { path: at.display() });
        }
        for (root, metas) in roots {
            let base_path = base.as_ref().map(|base| &base.path).filter(|base| root.prefix_matches(base)).unwrap_or(&root);
            for meta in metas {
                let Some(directories) = directories_below(base_path, &meta.location) else { continue };
                let name = meta.location.filename().unwrap_or_default();
                let is_wanted = name_filter.as_ref().is_none_or(|filter| filter.is_match(name));
                let is_partitioned = directories.iter().all(|directory| directory.contains('='));
                if is_wanted && (is_recursive || is_partitioned) {
                    found.push((meta, if is_recursive { Vec::new() } else { directories }));
                }
            }
        }
        location.get_or_insert(at);
    }
    let Some(location) = location else {
        return Err(Error::Bug { invariant: "a read has at least one path".into() });
    };
    found.sort_by(|left, right| left.0.location.cmp(&right.0.location));
    let directories: Vec<&[String]> = found.iter().map(|(_, directories)| directories.as_slice()).collect();
    let (partition_columns, values) = partitioning::infer(&directories, wanted, conf)?;
    let files = found.into_iter().zip(values).map(|((meta, _), partition_values)| ListedFile { meta, partition_values });
    Ok(Files { location, files: files.collect(), partition_columns })
}

/// The places that a path or pattern means, with all files in each.
async fn roots(at: &Location) -> Result<Vec<(Path, Vec<ObjectMeta>)>> {
    let is_glob = |segment: &str| segment.contains(['*', '?', '[', '{']);
    let segments: Vec<String> = at.path.parts().map(|part| part.as_ref().to_string()).collect();
    // A name with such characters that exists is meant itself.
    if let Some(metas) = files_at(at).await? {
        return Ok(vec![(at.path.clone(), metas)]);
    }
    let Some(first_glob) = segments.iter().position(|segment| is_glob(segment)) else { return Ok(Vec::new()) };
    let pattern = Regex::new(&format!("^{}$", segments.iter().map(|s| glob_to_regex(s)).collect::<Vec<_>>().join("/")))
        .map_err(|error| Error::InvalidPlan { detail: error.to_string() })?;
    let prefix = Path::from_iter(at.path.parts().take(first_glob));
    let all: Vec<ObjectMeta> = at.store.list(Some(&prefix)).try_collect().await.map_err(store_error)?;
    let mut roots: Vec<(Path, Vec<ObjectMeta>)> = Vec::new();
    for meta in all {
        let root: Path = meta.location.parts().take(segments.len()).collect();
        if root.parts_count() < segments.len() || !pattern.is_match(root.as_ref()) {
            continue;
        }
        match roots.iter_mut().find(|(known, _)| *known == root) {
            Some((_, metas)) => metas.push(meta),
            None => roots.push((root, vec![meta])),
        }
    }
    Ok(roots)
}

/// The files at a place: itself, or all below it. None when nothing is there.
async fn files_at(at: &Location) -> Result<Option<Vec<ObjectMeta>>> {
    let is_directory = at.local_path().map(|path| path.is_dir());
    if is_directory == Some(false) || is_directory.is_none() && !at.path.as_ref().is_empty() {
        match at.store.head(&at.path).await {
            Ok(meta) => return Ok(Some(vec![meta])),
            Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(store_error(error)),
        }
    }
    if is_directory == Some(false) {
        return Ok(None);
    }
    let metas: Vec<ObjectMeta> = at.store.list(Some(&at.path)).try_collect().await.map_err(store_error)?;
    Ok((is_directory == Some(true) || !metas.is_empty()).then_some(metas))
}

/// The names of the directories between `base` and a file; none for a hidden file.
fn directories_below(base: &Path, file: &Path) -> Option<Vec<String>> {
    let mut names: Vec<String> = file.prefix_match(base)?.map(|part| part.as_ref().to_string()).collect();
    let is_hidden = |name: &String| {
        name.starts_with('.') || name.starts_with('_') && !name.contains('=') || name.ends_with("._COPYING_")
    };
    if names.iter().any(is_hidden) {
        return None;
    }
    names.pop();
    Some(names)
}

fn glob_regex(glob: &str) -> Result<Regex> {
    Regex::new(&format!("^{}$", glob_to_regex(glob))).map_err(|error| Error::InvalidPlan { detail: error.to_string() })
}

/// Hadoop's patterns: `*`, `?`, `[ab]`, `[^a]`, `{a,b}`.
fn glob_to_regex(glob: &str) -> String {
    let mut regex = String::new();
    let (mut in_class, mut braces) = (false, 0usize);
    for c in glob.chars() {
        match c {
            ']' if in_class => {
                in_class = false;
                regex.push(']');
            }
            _ if in_class => regex.push_str(&if c == '^' || c == '-' || c == '!' {
                if c == '!' { "^".into() } else { c.to_string() }
            } else {
                regex::escape(&c.to_string())
            }),
            '[' => {
                in_class = true;
                regex.push('[');
            }
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '{' => {
                braces += 1;
                regex.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                regex.push(')');
            }
            ',' if braces > 0 => regex.push('|'),
            c => regex.push_str(&regex::escape(&c.to_string())),
        }
    }
    regex
}

pub(super) fn store_error(source: object_store::Error) -> Error {
    Error::ObjectStore { source }
}
