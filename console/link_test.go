package console

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestModulesAreLinkedInTheOrderOfTheirImports(t *testing.T) {
	modules := fstest.MapFS{
		"a.js": {Data: []byte("import { b, c } from \"./b.js\";\nimport { d } from \"./d.js\";\nb(c, d);\n")},
		"b.js": {Data: []byte("// A comment.\nimport { d } from \"./d.js\";\nexport async function b(x) {\n  return d + x;\n}\nexport const c = 1;\n")},
		"d.js": {Data: []byte("export class d {}\n")},
	}
	script, err := link("a.js", modules.ReadFile)
	require.NoError(t, err)
	assert.Equal(t, `const $d = (() => {
class d {}
return { d };
})();
const $b = (() => {
const { d } = $d;
async function b(x) {
return d + x;
}
const c = 1;
return { b, c };
})();
const $a = (() => {
const { b, c } = $b;
const { d } = $d;
b(c, d);
return {  };
})();
`, string(script))
}

func TestWhatCannotBeLinkedIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		`import { b as c } from "./b.js";`: "an import that is not of names of a module",
		`import "./b.js";`:                 "an import that is not of names of a module",
		`import { b } from "b.js";`:        "an import that is not of names of a module",
		`export default 1;`:                "an export that is no const",
		`export let x = 1;`:                "an export that is no const",
		`import { a } from "./a.js";`:      "modules import each other: a.js, a.js",
		`import { b } from "./b.js";`:      "no b",
	} {
		_, err := link("a.js", func(name string) ([]byte, error) {
			if name == "a.js" {
				return []byte(text + "\n"), nil
			}
			return nil, errors.New("no b")
		})
		assert.ErrorContains(t, err, want, text)
	}
}

// Every module is part of the page: one that nobody imports would be left out in silence.
func TestAllModulesArePartOfThePage(t *testing.T) {
	script := string(readAssets().files["app.js"].plain)
	modules, err := fs.Glob(files, "page/*.js")
	require.NoError(t, err)
	for _, module := range modules {
		assert.Contains(t, script, "const "+variable(strings.TrimPrefix(module, "page/"))+" = (() => {")
	}
	assert.NotContains(t, script, "\nexport ")
	assert.NotContains(t, script, "\nimport ")
}
