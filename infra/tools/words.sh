#!/usr/bin/env bash
# Fails on words that the style rules forbid in code, comments, messages, tests and docs. Exempt: texts of pages for visitors and
# operators, audit actions and names in contracts.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

words='whoever|somebody|nobody|everybody|anew|told|let in|put aside|in trouble|by hand|for a while'
files=('*.rs' '*.lua' '*.ts' '*.tsx' '*.mjs' '*.js' '*.java' '*.go' '*.py' '*.sh' '*.yml' '*.yaml' '*.toml' '*.md' '*.css' '*.conf' 'Makefile')
exempt=(
  # Texts for visitors and operators, and the browser tests that look for them.
  ':!examples/storefront/src/shop/messages.rs'
  ':!web/test/console.test.mjs' ':!web/test/demo.test.mjs' ':!web/test/wait.test.mjs' ':!web/test/page.test.mjs' ':!web/test/opening.test.mjs' ':!web/*/dist/*'
  # This list, and images whose user is `nobody`.
  ':!infra/tools/words.sh' ':!infra/containers/base-images.sh'
)
# Contracts: the alert and its runbook, an audit action, a key of the console's texts, types named NoBody.
contracts='nobody-leads|"set by hand"|t\("nobody"\)|NoBody|noBody'
if git grep -niwE "$words" -- "${files[@]}" "${exempt[@]}" | grep -vE "$contracts"; then
  echo "these words are not plain engineering English: see CONTRIBUTING.md" >&2
  exit 1
fi
