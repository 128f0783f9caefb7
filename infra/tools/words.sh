#!/usr/bin/env bash
# Fails on words that the style rules forbid in code and comments. Exempt: tests, texts for users and operators, and doc comments that are
# published in schemas and OpenAPI documents.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

words='[Ww]hoever|[Ss]omebody|[Nn]obody|[Ee]verybody|anew|told|let in'
exempt=(
  ':!*/tests/*' ':!*/test/*'
  ':!crates/domain/src/event.rs' ':!crates/domain/src/event/inbound.rs' ':!crates/domain/src/line_rules.rs'
  ':!crates/domain/src/policy.rs' ':!crates/domain/src/ticket.rs' ':!crates/runtime/src/problem.rs'
  ':!services/daegi/src/banner.rs' ':!examples/storefront/src/demo/narrator.rs' ':!examples/storefront/src/shop/messages.rs'
)
if git grep -nwE "$words" -- '*.rs' '*.lua' '*.ts' '*.tsx' '*.java' "${exempt[@]}" | grep -vE '^[^:]+:[0-9]+: *(pub )?(async )?fn |t\("nobody"\)'; then
  echo "these words are not plain engineering English: see CONTRIBUTING.md" >&2
  exit 1
fi
