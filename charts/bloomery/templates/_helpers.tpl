{{- define "bloomery.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" }}
{{- end }}

{{- define "bloomery.fullname" -}}
{{- $name := include "bloomery.name" . }}
{{- if .Values.fullnameOverride }}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" }}
{{- else if contains $name .Release.Name }}
{{- .Release.Name | trunc 40 | trimSuffix "-" }}
{{- else }}
{{- printf "%s-%s" .Release.Name $name | trunc 40 | trimSuffix "-" }}
{{- end }}
{{- end }}

{{/* The labels that select the operator's pods. They must not change between versions of the chart, because the selector of a
     Deployment is immutable. */}}
{{- define "bloomery.selectorLabels" -}}
app.kubernetes.io/name: {{ include "bloomery.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: operator
{{- end }}

{{- define "bloomery.labels" -}}
{{ include "bloomery.selectorLabels" . }}
{{ include "bloomery.releaseLabels" . }}
{{- end }}

{{/* The labels of all objects of the chart, without those of its part. */}}
{{- define "bloomery.releaseLabels" -}}
{{- include "bloomery.checkLabels" . -}}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/part-of: bloomery
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* Fails if a value replaces a label of the chart: selectors need them. */}}
{{- define "bloomery.checkLabels" -}}
{{- $own := list "app.kubernetes.io/name" "app.kubernetes.io/instance" "app.kubernetes.io/component" "app.kubernetes.io/version" "app.kubernetes.io/part-of" "app.kubernetes.io/managed-by" "helm.sh/chart" }}
{{- range $value := list "commonLabels" "podLabels" "worker.podLabels" "mcp.podLabels" "gateway.podLabels" }}
{{- $labels := $.Values }}
{{- range splitList "." $value }}
{{- $labels = get ($labels | default dict) . }}
{{- end }}
{{- range $label, $_ := $labels | default dict }}
{{- if has $label $own }}
{{- fail (printf "%s must not contain the label %s: the chart sets it, and its selectors need it" $value $label) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* The `annotations:` block of an object, on a new line and indented by `.at`: the annotations in `.extra` and the common ones.
     Empty if there are none. */}}
{{- define "bloomery.annotations" -}}
{{- $at := .at | int }}
{{- with merge (dict) (.extra | default dict) .root.Values.commonAnnotations }}
{{- printf "annotations:\n%s" (toYaml . | indent 2) | nindent $at }}
{{- end }}
{{- end }}

{{- define "bloomery.skillTemplates" -}}
{{- printf "%s-skill-templates" (include "bloomery.fullname" .) }}
{{- end }}

{{- define "bloomery.serviceAccountName" -}}
{{- if .Values.serviceAccount.create }}
{{- default (include "bloomery.fullname" .) .Values.serviceAccount.name }}
{{- else }}
{{- required "serviceAccount.name must be set if serviceAccount.create is false" .Values.serviceAccount.name }}
{{- end }}
{{- end }}

{{/* The security contexts of the pods of this chart, and of their containers. They pass the Pod Security Standard `restricted`. */}}
{{- define "bloomery.podSecurityContext" -}}
runAsNonRoot: true
{{- if not .Values.uidsFromPlatform }}
runAsUser: 65532
runAsGroup: 65532
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "bloomery.containerSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}

{{/* The priority and the nodes of a pod, from the values of the operator or of the gateway. Empty if they set nothing. */}}
{{- define "bloomery.scheduling" -}}
{{- $fields := dict }}
{{- range $name, $value := pick . "priorityClassName" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- if $value }}
{{- $_ := set $fields $name $value }}
{{- end }}
{{- end }}
{{- with $fields }}
{{- toYaml . }}
{{- end }}
{{- end }}

{{/* The reference of an image: (dict "image" .Values.image "root" $). */}}
{{- define "bloomery.image" -}}
{{- if .image.digest }}
{{- printf "%s@%s" .image.repository .image.digest }}
{{- else }}
{{- printf "%s:%s" .image.repository (default .root.Chart.AppVersion .image.tag) }}
{{- end }}
{{- end }}

{{/* The Secret with the key pair that signs the report endpoint's certificate. The chart creates it empty; the operator fills it. */}}
{{- define "bloomery.reportCaSecret" -}}
bloomery-report-ca
{{- end }}

{{- define "bloomery.leaseName" -}}
{{ include "bloomery.fullname" . }}-leader
{{- end }}

{{/* The `version` and `spec` of the CRD (dict "name" ... "version" ...) in the cluster, if its version is higher than that of the chart.
     An older chart must not remove fields in which objects are stored. Without access to a cluster (`helm template`, Argo CD) this is
     empty. */}}
{{- define "bloomery.newerCrd" -}}
{{- $live := lookup "apiextensions.k8s.io/v1" "CustomResourceDefinition" "" .name }}
{{- $version := dig "metadata" "annotations" "bloomery.dev/crd-version" "0" $live | toString }}
{{- if gt (int $version) (int .version) }}
{{- dict "version" $version "spec" $live.spec | toYaml }}
{{- end }}
{{- end }}

{{/* Not empty if the release contains the objects of cluster scope: CRDs, admission policies, ClusterRoles, and the operator's rights. An
     upgrade with `--reuse-values` from an older chart has no such value. */}}
{{- define "bloomery.clusterResources" -}}
{{- if dig "enabled" true (.Values.clusterResources | default dict) }}true{{ end }}
{{- end }}

{{/* Not empty if the release contains the objects of its namespace: the operator and what it needs there. */}}
{{- define "bloomery.namespacedResources" -}}
{{- if dig "enabled" true (.Values.namespacedResources | default dict) }}true{{ end }}
{{- end }}

{{/* The namespaces that the operator serves, as JSON. Empty: all. */}}
{{- define "bloomery.watchedNamespaces" -}}
{{- $namespaces := dig "namespaces" list (.Values.watch | default dict) | default list }}
{{- if has .Release.Namespace $namespaces }}
{{- fail "watch.namespaces must not contain the namespace of the release: the operator makes no pods in its own namespace" }}
{{- end }}
{{- range $namespaces }}
{{- if has . (list "kube-system" "kube-public" "kube-node-lease") }}
{{- fail (printf "watch.namespaces must not contain %s: the operator makes no pods in namespaces of the system" .) }}
{{- end }}
{{- end }}
{{- toJson $namespaces }}
{{- end }}

{{/* The format of the workers' logs. The gateway reads them as JSON lines. */}}
{{- define "bloomery.workerLogFormat" -}}
{{- if not (include "bloomery.gateway" .) }}
{{- .Values.worker.logFormat | default "text" }}
{{- else if eq (.Values.worker.logFormat | default "json") "json" }}
{{- "json" }}
{{- else }}
{{- fail (printf "worker.logFormat is %q, but the gateway (gateway.enabled) reads the workers' logs as JSON: remove worker.logFormat, or set it to json" .Values.worker.logFormat) }}
{{- end }}
{{- end }}

{{/* Whether the operator writes network policies. An upgrade with `--reuse-values` from an older chart has no values of `network`. */}}
{{- define "bloomery.networkPolicies" -}}
{{- if dig "policies" true (.Values.network | default dict) }}true{{ end }}
{{- end }}

{{/* The outgoing connections of the operator and of the gateway: the API server and DNS. */}}
{{- define "bloomery.egress" -}}
{{- $network := .Values.network | default dict }}
{{- $dns := $network.dns | default dict }}
{{- $apiServer := $network.apiServer | default dict -}}
{{- if $apiServer.peers -}}
# DNS, and the API server.
- to:
    {{- $dns.peers | default (list (dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" "kube-system")) "podSelector" (dict "matchLabels" (dict "k8s-app" "kube-dns")))) | toYaml | nindent 4 }}
  ports:
    {{- $dns.ports | default (list (dict "port" 53 "protocol" "UDP") (dict "port" 53 "protocol" "TCP")) | toYaml | nindent 4 }}
- to:
    {{- toYaml $apiServer.peers | nindent 4 }}
  {{- with $apiServer.ports }}
  ports:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- else -}}
# The addresses of the API server are not known (network.apiServer).
- {}
{{- end }}
{{- end }}

{{/* The network of tenants, as the operator reads it. */}}
{{- define "bloomery.network" -}}
{{- $network := pick (.Values.network | default dict) "dns" "shared" "deny" }}
{{- $_ := set $network "policies" (eq (include "bloomery.networkPolicies" .) "true") }}
{{- $_ := set $network "operator" (include "bloomery.selectorLabels" . | fromYaml) }}
{{- range $name, $value := $network }}
{{- if kindIs "invalid" $value }}
{{- $_ := unset $network $name }}
{{- end }}
{{- end }}
{{- toJson $network }}
{{- end }}

{{/* The limits of tenants, as the operator reads them. */}}
{{- define "bloomery.tenants" -}}
{{- $tenants := pick (.Values.tenants | default dict) "allowedImages" "maxLimits" "allowedTools" "blockedTools" "allowedModels" "allowedModelUrls" }}
{{- range $name, $value := $tenants }}
{{- if kindIs "invalid" $value }}
{{- $_ := unset $tenants $name }}
{{- end }}
{{- end }}
{{- toJson $tenants }}
{{- end }}
