//! The data sets that can be fetched: where from, and what must arrive.

use std::path::{Path, PathBuf};

/// A file to download, known by its sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteFile<'a> {
    /// Its name, at the source and on disk.
    pub name: &'a str,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: &'a str,
}

/// A data set that can be fetched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownSet {
    /// Its name in recipes, on the command line, and of its folder.
    pub key: &'static str,
    /// Folders on the web that hold its files, tried in order.
    pub sources: &'static [&'static str],
    /// What is downloaded.
    pub files: &'static [RemoteFile<'static>],
    /// What the loader opens; IDX files may also be gzipped or written with a dot.
    pub opened: &'static [&'static str],
    /// Length of each member to unpack from the archive; none where files are read as they arrive.
    pub member_bytes: Option<u64>,
}

const IDX: [&str; 4] =
    ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"];

const fn file(name: &'static str, bytes: u64, sha256: &'static str) -> RemoteFile<'static> {
    RemoteFile { name, bytes, sha256 }
}

/// Every set, in the order of the catalogue.
pub const KNOWN: [KnownSet; 3] = [
    KnownSet {
        key: "mnist",
        sources: &[
            "https://ossci-datasets.s3.amazonaws.com/mnist/",
            "https://storage.googleapis.com/cvdf-datasets/mnist/",
        ],
        files: &[
            file(
                "train-images-idx3-ubyte.gz",
                9_912_422,
                "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            file(
                "train-labels-idx1-ubyte.gz",
                28_881,
                "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            file(
                "t10k-images-idx3-ubyte.gz",
                1_648_877,
                "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            file(
                "t10k-labels-idx1-ubyte.gz",
                4_542,
                "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ],
        opened: &IDX,
        member_bytes: None,
    },
    KnownSet {
        key: "fashion-mnist",
        sources: &[
            "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
            "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/",
        ],
        files: &[
            file(
                "train-images-idx3-ubyte.gz",
                26_421_880,
                "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
            ),
            file(
                "train-labels-idx1-ubyte.gz",
                29_515,
                "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
            ),
            file(
                "t10k-images-idx3-ubyte.gz",
                4_422_102,
                "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
            ),
            file(
                "t10k-labels-idx1-ubyte.gz",
                5_148,
                "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
            ),
        ],
        opened: &IDX,
        member_bytes: None,
    },
    KnownSet {
        key: "cifar10",
        sources: &["https://www.cs.toronto.edu/~kriz/"],
        files: &[file(
            "cifar-10-binary.tar.gz",
            170_052_171,
            "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
        )],
        opened: &[
            "data_batch_1.bin",
            "data_batch_2.bin",
            "data_batch_3.bin",
            "data_batch_4.bin",
            "data_batch_5.bin",
            "test_batch.bin",
        ],
        member_bytes: Some(30_730_000),
    },
];

impl KnownSet {
    /// Bytes to download.
    pub fn download_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// For every file the loader opens, where it is in `folder`, if it is.
    pub fn find(&self, folder: &Path) -> Vec<(&'static str, Option<PathBuf>)> {
        let locate = |name: &str| {
            // the loader accepts train-images.idx3-ubyte too
            let dotted = name.replace("-idx", ".idx");
            let spellings = [name.to_owned(), format!("{name}.gz"), dotted.clone(), format!("{dotted}.gz")];
            spellings.iter().map(|spelling| folder.join(spelling)).find(|path| path.is_file())
        };
        self.opened.iter().map(|name| (*name, locate(name))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_sums_and_names_are_plain() {
        for set in KNOWN {
            for file in set.files {
                assert_eq!(file.sha256.len(), 64, "{}", file.name);
                assert!(file.sha256.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c)), "{}", file.name);
                assert!(!file.name.contains('/') && file.bytes > 0);
            }
            assert!(set.sources.iter().all(|source| source.ends_with('/')), "{}", set.key);
        }
    }

    #[test]
    fn the_keys_are_those_of_recipes() {
        let keys: Vec<&str> = limitpoint::data::DataSpec::catalogue().iter().map(|entry| entry.key).collect();
        assert!(KNOWN.iter().all(|set| keys.contains(&set.key)));
    }
}
