//! The registry of scripts. Each file's head says what it takes, answers and changes.

use std::sync::OnceLock;

use ::redis::aio::ConnectionLike;
use ::redis::{RedisResult, Script};

macro_rules! registry {
    (line: [$($line:ident),* $(,)?], plain: [$($plain:ident),* $(,)?]) => {
        /// Every script there is.
        pub(crate) struct Scripts {
            $(pub(super) $line: Script,)*
            $(pub(super) $plain: Script,)*
        }

        impl Scripts {
            fn new() -> Self {
                Self {
                    $($line: Script::new(concat!(
                        include_str!("scripts/numbers.lua"),
                        include_str!("scripts/line.lua"),
                        include_str!(concat!("scripts/", stringify!($line), ".lua")),
                    )),)*
                    $($plain: Script::new(concat!(
                        include_str!("scripts/numbers.lua"),
                        include_str!(concat!("scripts/", stringify!($plain), ".lua")),
                    )),)*
                }
            }

            /// Loads them all, so that the first person does not wait for it.
            pub(super) async fn load(&self, connection: &mut impl ConnectionLike) -> RedisResult<()> {
                $(self.$line.load_async(connection).await?;)*
                $(self.$plain.load_async(connection).await?;)*
                Ok(())
            }
        }
    };
}

registry! {
    line: [
        remove_item, set_policy, set_paused, reset, purge, join, snapshot, mark_seen,
        resolve, close, counts, admit, expire, sweep,
    ],
    plain: [open, fence, outbox_ack, put_items, end_catalogue]
}

/// The scripts, hashed once per process.
pub(crate) fn scripts() -> &'static Scripts {
    static SCRIPTS: OnceLock<Scripts> = OnceLock::new();
    SCRIPTS.get_or_init(Scripts::new)
}
