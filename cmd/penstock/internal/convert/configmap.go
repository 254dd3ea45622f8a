package convert

import "regexp"

// configMaps returns the files that the ConfigMaps of Kubernetes in a manifest have, nil if there are none. Those in
// JSON are read as what other registries export.
func configMaps(manifest File) (all []File) {
	if beginsLikeJSON(manifest.Data) || !regexp.MustCompile(`(?m)^(- |\s*)kind:\s*["']?ConfigMap`).Match(manifest.Data) {
		return nil
	}
	documents, _, err := parseYAML(manifest.Data)
	if err != nil {
		return nil
	}
	for _, document := range documents {
		items := []node{document}
		if list := plainObject(document).find("items"); list != nil {
			items, _ = list.node.value.([]node)
		}
		for _, item := range items {
			all = append(all, filesOf(item, manifest.Name)...)
		}
	}
	return all
}

// filesOf returns the files of an object, if it is a ConfigMap.
func filesOf(n node, manifest string) (all []File) {
	o := plainObject(n)
	data := o.find("data")
	if kind := o.find("kind"); kind == nil || kind.node.value != "ConfigMap" || data == nil {
		return nil
	}
	path := manifest + "/"
	if metadata := o.find("metadata"); metadata != nil {
		if name := plainObject(metadata.node).find("name"); name != nil {
			text, _ := name.node.value.(string)
			path += text + "/"
		}
	}
	for _, e := range plainObject(data.node).entries {
		if text, ok := e.node.value.(string); ok {
			all = append(all, File{Name: path + e.name(), Data: []byte(text)})
		}
	}
	return all
}
